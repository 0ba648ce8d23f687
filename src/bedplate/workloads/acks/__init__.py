"""How fast the writer of an own engine is: its acknowledgements, timed as they come, without the recorder of power cuts."""
