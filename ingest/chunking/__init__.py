"""Chunking: a parsed document in, passages with their locations out. Pure; reads no file, writes nothing.

Cuts are *content-defined*: where a passage ends depends on the text near the cut, never on how much text stands before
it. So an edit changes the chunks that it touches and no others, and only those are embedded again. ``chunk`` is the
whole of it; ``Sizes`` says how long passages are (part of the recipe), ``Tokenizer`` is what an embedder must offer.

The idea is that of content-defined chunking in backup programs (Muthitacharoen, Chen & Mazieres 2001, "A low-bandwidth
network file system"; the choice by local maximum is Bjorner, Blass & Gurevich 2010), applied to sentences and headings
in place of bytes.
"""
