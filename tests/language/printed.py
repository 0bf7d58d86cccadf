"""The CQL queries that the documents print, by document and line.

Where a document leaves something out, the least that makes it a query is filled in: window lengths for `...`, quotes
around constants, the aliases S1 and S2.
"""

from __future__ import annotations

DECLARATIONS = """
CREATE STREAM C (ts TIMESTAMP, pid BIGINT, size BIGINT) TIMESTAMP BY ts;
CREATE STREAM B (ts TIMESTAMP, pid BIGINT, size BIGINT) TIMESTAMP BY ts;
CREATE STREAM O (ts TIMESTAMP, pid BIGINT, size BIGINT) TIMESTAMP BY ts;
CREATE STREAM S1 (ts TIMESTAMP, a BIGINT, b BIGINT) TIMESTAMP BY ts;
CREATE STREAM S2 (ts TIMESTAMP, a BIGINT, b BIGINT) TIMESTAMP BY ts;
CREATE STREAM S3 (ts TIMESTAMP, a BIGINT, b BIGINT) TIMESTAMP BY ts;
CREATE STREAM Stream1 (ts TIMESTAMP, a BIGINT, b BIGINT) TIMESTAMP BY ts;
CREATE STREAM Stream2 (ts TIMESTAMP, a BIGINT, b BIGINT) TIMESTAMP BY ts;
CREATE STREAM T (ts TIMESTAMP, b BIGINT) TIMESTAMP BY ts;
CREATE STREAM S (ts TIMESTAMP, a BIGINT, b BIGINT, length INT, protocol STRING, user STRING) TIMESTAMP BY ts;
CREATE STREAM CarStr (ts TIMESTAMP, cid BIGINT, sid INT, xpos INT) TIMESTAMP BY ts;
CREATE STREAM Link1 (ts TIMESTAMP, protocol STRING, source_IP_address STRING, destination STRING) TIMESTAMP BY ts;
CREATE STREAM Link2 (ts TIMESTAMP, protocol STRING, source_IP_address STRING, destination STRING) TIMESTAMP BY ts;
CREATE STREAM Link3 (ts TIMESTAMP, protocol STRING, source_IP_address STRING, destination STRING) TIMESTAMP BY ts;
"""

PRINTED = {
    "k-Mon 29, common traffic": """
        Select  sum(C.size)
        From    C [Range 10 minutes], B [Range 10 minutes],
                O [Range 10 minutes]
        Where   C.pid = B.pid and B.pid = O.pid""",
    "k-Mon 92, a filtered join": """
        Select  Istream(*)
        From    S1 [Rows 50,000], S2 [Rows 50,000]
        Where   S1.A = S2.A and S2.B > 10""",
    "k-Mon 470, AccSeg": """
        Select distinct sid From
          (Select cid, sid From
            (CarStr [Partition By cid Rows 1]) as LastRep,
            (Select distinct cid From
              CarStr [Range 30 seconds]) as CurActiveCars
            Where LastRep.cid = CurActiveCars.cid)
          as CurCarSeg,
          (Select cid
            From CarStr [Partition By cid Rows 4]
            Group By cid
            Having count (distinct xpos) = 1 and count(*) = 4)
          as AccCars
        Where CurCarSeg.cid = AccCars.cid""",
    "Windows 302, the largest so far": "SELECT MAX(a) FROM S",
    "Windows 302, the largest in a window": "SELECT MAX(a) FROM S [RANGE 1 min]",
    "Windows 343, the largest of a join": """
        SELECT MAX(a)
        FROM S [RANGE 1 min], T [RANGE 1 min]
        WHERE S.b = T.b""",
    "Windows 470, a window join": """
        SELECT Rstream(*)
        FROM S1 [RANGE 1 min], S2 [RANGE 1 min]
        WHERE S1.a = S2.a""",
    "Windows 872, an output window": """
        SELECT Wstream(*)[ROWS 10]
        FROM Stream1[RANGE 1 min] AS S1, Stream2[RANGE 1 min] AS S2
        WHERE S1.a = S2.a""",
    "Windows 882, a sum of sums": """
        SELECT SUM(a)
        FROM (SELECT SUM(a) FROM Stream1[RANGE 6 sec SLIDE 6 sec INTERNAL]) [ROWS 10]""",
    "Windows 889, the same with an output window": """
        SELECT SUM(Wstream(SUM(a))[ROWS 10])
        FROM Stream1[RANGE 6 sec SLIDE 6 sec]""",
    "Windows 895, periodic with restore": """
        SELECT Istream-restore(*)
        FROM Stream1[RANGE 1 min SLIDE 10 sec] AS S1, Stream2[RANGE 1 min SLIDE 10 sec] AS S2
        WHERE S1.a = S2.a""",
    "Windows 919, Figure 3.5": """
        SELECT Rstream(*)
        FROM S1 [RANGE 1 min], S2 [RANGE 1 min]
        WHERE S1.a = S2.a
        AND NOT EXISTS (
        SELECT Rstream(*)
        FROM S3 [RANGE 1 min]
        WHERE S3.a = S1.a)""",
    "Windows 982, Query 1": """
        SELECT Rstream(*)
        FROM Link1 [RANGE 2000 sec], Link2 [RANGE 2000 sec]
        WHERE Link1.source_IP_address = Link2.source_IP_address
        AND Link1.protocol = 'ftp'
        AND Link2.protocol = 'ftp'""",
    "Windows 992, Query 2": """
        SELECT Rstream(DISTINCT source_IP_address)
        FROM Link1 [RANGE 2000 sec]""",
    "Windows 990, Query 2 over pairs": """
        SELECT Rstream(DISTINCT source_IP_address, destination)
        FROM Link1 [RANGE 2000 sec]""",
    "Windows 999, Query 3": """
        SELECT Rstream(*)
        FROM Link1 [RANGE 2000 sec]
        WHERE NOT EXISTS (
            SELECT Rstream(*)
            FROM Link2 [RANGE 2000 sec]
        WHERE Link2.source_IP_address = Link1.source_IP_address)""",
    "Windows 1007, Query 4": """
        SELECT Rstream(*)
        FROM Link1 [RANGE 2000 sec], Link3 [RANGE 2000 sec]
        WHERE Link1.source_IP_address = Link3.source_IP_address
        AND Link3.protocol = 'ftp'
        AND NOT EXISTS (
            SELECT Rstream(*)
            FROM Link2 [RANGE 2000 sec]
            WHERE Link2.source_IP_address = Link1.source_IP_address)""",
    "Windows 2315, Q1": "SELECT MEDIAN(length)\nFROM S [WINDOW 10 min SLIDE 2 min]",
    "Windows 2322, Q2": "SELECT MEDIAN(length)\nFROM S [WINDOW 14 min SLIDE 3 min]",
    "Windows 2415, Q1": "SELECT SUM(length) FROM S WHERE protocol='TCP'",
    "Windows 2416, Q2": "SELECT SUM(length) FROM S WHERE protocol='UDP'",
    "Windows 2417, Q3": "SELECT SUM(length) FROM S WHERE protocol='TCP' OR protocol='UDP'",
    "Windows 2418, Q4": "SELECT MAX(length) FROM S WHERE protocol='TCP'",
    "Windows 2419, Q5": "SELECT MAX(length) FROM S WHERE user='U'",
    "Windows 2420, Q6": "SELECT MAX(length) FROM S WHERE protocol='TCP' OR user='U'",
}
