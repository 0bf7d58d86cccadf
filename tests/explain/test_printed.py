"""Every query that the documents print parses, binds, means something and explains."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest
from tests.language.printed import DECLARATIONS, PRINTED

from headgate.session import Session


@pytest.mark.parametrize("name", PRINTED)
def test_a_printed_query_explains(name: str) -> None:
    session = Session()
    session.sql(DECLARATIONS)
    query = session.sql(PRINTED[name])
    assert query is not None
    explained = query.explain(alternatives=True)
    assert explained.as_dict()["queries"][0]["plan"]["inputs"]
    assert ET.fromstring(explained.to_svg()).tag.endswith("svg")
