"""Bounded memory by punctuation: which joins can forget their rows once streams announce what will not come
again.

`query` says what is judged, `graph` whether and in which order a stream's rows can be purged, `transformed`
decides the same for the whole query at once, `plans` which trees of joins stay safe, `schemes` which
punctuations are needed, `punctuations` whether they can be forgotten themselves, `witness` proves a
refusal.
"""
