"""Adds up the folded text of many machines: merge_fleet(1), stackpipe merge."""
