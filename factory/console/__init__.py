"""The console's frame: the admin site, whose scope its pages are read in, and how a page acts."""
