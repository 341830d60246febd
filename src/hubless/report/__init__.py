"""The page: what hubs do to objects and queries, and what moving changes."""

LAYOUTS = ("pca", "tsne", "umap")  # of the map; here, so that the command line need not load the rest
