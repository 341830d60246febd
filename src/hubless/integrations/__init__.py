"""Models in other programs: LangChain, LlamaIndex, MTEB, FAISS, ONNX, sentence-transformers, NumPy.

Their packages are imported when they are used.
"""

FORMS = ("faiss", "numpy", "onnx", "sentence-transformers")  # what a model can be exported as
