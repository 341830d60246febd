"""Models in other programs: LangChain, LlamaIndex, FAISS, ONNX, sentence-transformers, plain NumPy.

Their packages are imported when they are used.
"""

FORMS = ("faiss", "numpy", "onnx", "sentence-transformers")  # what a model can be exported as
