"""Bounded memory by values: which select-project-join queries need only finitely many facts about their past.

`query` and `domain` say what is judged, `closure` what its predicates imply, `ordering` and `references`
split and read it, `theorems` and `polynomial` judge it, `verdict` chooses how, `selfjoin` and `aggregates`
extend it, `buckets` says what to remember, `witness` proves a refusal.
"""
