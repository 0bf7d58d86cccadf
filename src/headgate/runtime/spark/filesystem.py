"""Folders at any address that Spark's file systems know (s3a, hdfs, abfss, viewfs, file), through Spark's own Java.

A file is written whole or not at all. Where a file appears when it is closed, as in object stores, it is written in
its place: a store has no rename. Elsewhere it is written beside its place and renamed, in one step.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

from py4j.java_gateway import is_instance_of
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from headgate.runtime.spark.failures import cause_of

_APPEARS_WHEN_CLOSED = "fs.capability.outputstream.abortable"


@dataclass(frozen=True)
class Folder:
    """A folder, which may not be there yet. What goes wrong in it is an OSError."""

    spark: SparkSession = field(repr=False, compare=False)
    address: str
    """As Spark reads it: without a scheme, a path in the file system that Spark's settings name first."""

    def __str__(self) -> str:
        return self.address

    def __truediv__(self, name: str) -> Folder:
        return Folder(self.spark, f"{self.address.rstrip('/')}/{name}")

    @property
    def local(self) -> Path | None:
        """The same folder for this process, if it is one of this machine."""
        with _as_os_error(self.address):
            files, path = self._place()
            where = files.makeQualified(path).toUri()
            return Path(where.getPath()) if where.getScheme() == "file" else None

    def read(self, name: str) -> bytes | None:
        """The content of a file; None if there is none."""
        with _as_os_error(self.address):
            files, path = self._place(name)
            try:
                stream = files.open(path)
            except Py4JJavaError as error:
                if _is_missing(error):
                    return None
                raise
            try:
                return bytes(stream.readAllBytes())
            finally:
                stream.close()

    def write(self, name: str, content: bytes) -> None:
        """Puts a file in place, or in place of another, so that nobody ever reads a part of it."""
        with _as_os_error(self.address):
            files, path = self._place(name)
            if files.hasPathCapability(path, _APPEARS_WHEN_CLOSED):
                _fill(files.create(path, True), content)
                return
            files.mkdirs(path.getParent())
            beside = self._jvm.org.apache.hadoop.fs.Path(path.getParent(), f".{name}.{uuid4().hex}")
            try:
                _fill(files.create(beside, True), content)
                self._replace(files, beside, path)
            finally:
                files.delete(beside, False)

    def names(self) -> list[str]:
        """The names of what is in the folder."""
        with _as_os_error(self.address):
            files, path = self._place()
            try:
                return sorted(str(each.getPath().getName()) for each in files.listStatus(path))
            except Py4JJavaError as error:
                if _is_missing(error):
                    return []
                raise

    def download(self, target: Path) -> list[Path]:
        """Copies the files below the folder, or below what the address as a pattern means, to this machine.

        Each comes into a folder of its own, for two may have one name. Hidden ones are left out, as Spark's readers
        do.
        """
        copied: list[Path] = []
        with _as_os_error(self.address):
            files, path = self._place()
            found = files.globStatus(path)
            for each in self._below(files, list(found) if found is not None else []):
                folder = target / f"{len(copied):06d}"
                folder.mkdir()
                local = folder / str(each.getName())
                files.copyToLocalFile(False, each, self._path(str(local)), True)
                copied.append(local)
        return copied

    def _below(self, files: Any, found: list[Any]) -> list[Any]:
        """The paths of files, and of those in folders, in order of their names."""
        paths: list[Any] = []
        for each in sorted(found, key=lambda status: str(status.getPath())):
            if str(each.getPath().getName()).startswith((".", "_")):
                continue
            if each.isDirectory():
                paths += self._below(files, list(files.listStatus(each.getPath())))
            else:
                paths.append(each.getPath())
        return paths

    def exists(self, name: str) -> bool:
        """Whether there is a file or folder of that name."""
        with _as_os_error(self.address):
            files, path = self._place(name)
            return bool(files.exists(path))

    def delete(self, name: str) -> None:
        """Removes a file, or a folder with all that is in it, if it is there."""
        with _as_os_error(self.address):
            files, path = self._place(name)
            files.delete(path, True)

    @property
    def _jvm(self) -> Any:
        return self.spark._jvm

    def _path(self, address: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(address)

    def _place(self, name: str | None = None) -> tuple[Any, Any]:
        """The file system of the folder, and the path of the folder or of a file in it, in Java."""
        jvm = self._jvm
        path = jvm.org.apache.hadoop.fs.Path(self.address)
        files = path.getFileSystem(self._settings)
        if is_instance_of(self._gateway, files, _LOCAL):
            # Beside every file, it would keep another one with check sums.
            files = files.getRaw()
        return files, path if name is None else jvm.org.apache.hadoop.fs.Path(path, name)

    @property
    def _gateway(self) -> Any:
        return self.spark.sparkContext._gateway

    @property
    def _settings(self) -> Any:
        return self.spark._jsparkSession.sessionState().newHadoopConf()

    def _replace(self, files: Any, beside: Any, path: Any) -> None:
        """Gives a file another's name in one step."""
        if is_instance_of(self._gateway, files, _RAW):
            if not files.rename(beside, path):
                raise OSError(f"{beside} cannot be renamed to {path}")
            return
        kind = getattr(self._jvm.org.apache.hadoop.fs, "Options$Rename")
        how = self._gateway.new_array(kind, 1)
        how[0] = kind.OVERWRITE
        context = self._jvm.org.apache.hadoop.fs.FileContext.getFileContext(path.toUri(), self._settings)
        context.rename(beside, path, how)


_LOCAL = "org.apache.hadoop.fs.LocalFileSystem"
_RAW = "org.apache.hadoop.fs.RawLocalFileSystem"


def _fill(stream: Any, content: bytes) -> None:
    """Writes all of a file. One that could not be written must not appear, which closing it may do."""
    try:
        stream.write(content)
    except BaseException:
        if stream.hasCapability(_APPEARS_WHEN_CLOSED):
            stream.abort()
        raise
    stream.close()


def _is_missing(error: Py4JJavaError) -> bool:
    return str(error.java_exception.getClass().getName()).endswith("FileNotFoundException")


@contextmanager
def _as_os_error(address: str) -> Iterator[None]:
    """Failures of a file system are told as Python tells those of this machine's."""
    try:
        yield
    except (Py4JJavaError, PySparkException) as error:
        raise OSError(f"{address}: {cause_of(error)}") from error
