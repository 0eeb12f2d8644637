"""Pictures of every page, for every person, in three widths and both themes: how everybody looks at pages.

make gallery                     all of it, into var/gallery/index.html
make gallery ONLY=runs           pages whose names hold the word
"""
