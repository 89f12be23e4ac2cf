"""Methods of GS17, to compare the default with: constraint library, low-rank updates, damping of bodies and rows."""
