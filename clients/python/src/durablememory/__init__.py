"""Generated from proto/durablememory by `make gen`; never edited by hand."""
