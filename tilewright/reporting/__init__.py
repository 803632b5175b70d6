"""Reports: what became of a program and why, as terminal text, as one HTML page, and as data.

A report is a list of sections. To add one: a module of this package with one function that takes the subject of the
report and returns a `Section`, or None where it has nothing to say, and one row in `sections.SECTIONS`. The parts of a
section are texts, rich tables and pieces of HTML; each is rendered both ways by `parts`. Nothing in a section may
depend on another one.
"""
