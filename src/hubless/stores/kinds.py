"""The table of all kinds of stores. It imports nothing, so that the help of the command line can show it.

Other packages add kinds through the entry-point group "hubless.stores": the name of an entry point
is a scheme, as in `mystore:ADDRESS#TABLE`, or a suffix of files, such as ".vec"; its object is a subclass of
`hubless.stores.store.Store`. A name that is also in this table is ignored.
"""

GROUP = "hubless.stores"
FOLDER = "/"
METRICS = ("l2", "cosine", "ip")

# What a user types → where the class is.
KINDS = {
    FOLDER: "files.parts:Parts",
    ".npy": "files.plain_files:NpyFile",
    ".npz": "files.plain_files:NpzFile",
    ".parquet": "files.arrow_files:ArrowFile",
    ".arrow": "files.arrow_files:ArrowFile",
    ".ipc": "files.arrow_files:ArrowFile",
    ".feather": "files.arrow_files:ArrowFile",
    ".hdf5": "files.hdf5_file:Hdf5File",
    ".h5": "files.hdf5_file:Hdf5File",
    ".faiss": "faiss:FaissIndex",
    ".index": "faiss:FaissIndex",
    ".usearch": "usearch:UsearchIndex",
    ".hnsw": "hnswlib:HnswlibIndex",
    ".hnswlib": "hnswlib:HnswlibIndex",
    ".bin": "hnswlib:HnswlibIndex",
    "lancedb:FOLDER#TABLE": "lancedb.lance_table:LanceTable",
    "postgresql://USER@HOST/DATABASE#TABLE": "postgres.pg_table:PgTable",
    "postgres://USER@HOST/DATABASE#TABLE": "postgres.pg_table:PgTable",
    "qdrant:FOLDER-OR-URL#COLLECTION": "qdrant.qdrant_collection:QdrantCollection",
    "qdrant-edge:FOLDER": "qdrant.qdrant_edge:QdrantEdge",
    "chroma:FOLDER-OR-URL#COLLECTION": "chroma.chroma_collection:ChromaCollection",
    "sqlite:FILE#TABLE": "sqlite_vec.vec_table:VecTable",
    "duckdb:FILE#TABLE": "duckdb.duck_table:DuckTable",
}
BUILT_IN = {form.partition(":")[0]: where for form, where in KINDS.items()}
SUFFIXES = tuple(form for form in KINDS if form.startswith("."))
DATABASES = tuple(form for form in KINDS if ":" in form)
