"""The paper's published figures, row by row as in its Tables 1 to 4 (arXiv:1806.03945, Section 5).

Rows run over the data sets in the order of `DATASETS`: UCI, document, image.
"""

DIMENSION = 300  # of the document and image data sets, by principal component analysis
SPLITS = 4

METHODS = {  # as our files name them, and as the paper does
    "original-metric": "original metric",
    "lmnn": "LMNN",
    "itml": "ITML",
    "dml-eig": "DML-eig",
    "move-labeled": "Move-labeled",
    "move-query": "Move-query",
}
MAHALANOBIS = ("lmnn", "itml", "dml-eig")

DATASETS = {
    "UCI": {
        "ionosphere": "ionosphere",
        "balance-scale": "balance-scale",
        "iris": "iris",
        "wine": "wine",
        "glass": "glass",
    },
    "document": {"rcv": "RCV", "news": "News", "reuters": "Reuters", "tdt": "TDT"},
    "image": {"awa": "AwA", "cub": "CUB", "sun": "SUN", "apy": "aPY"},
}

# Table 1: dataset statistics. The prose has the classes of Reuters and TDT swapped; the table is right.
# fmt: off
STATISTICS: dict[str, tuple[int | None, ...]] = {
    "n_objects": (351, 625, 150, 178, 214, 9625, 18846, 8213, 10021, 30475, 11788, 14340, 15339),
    "n_classes": (2, 3, 3, 3, 6, 4, 20, 41, 56, 50, 200, 717, 32),
    "n_features": (34, 4, 4, 13, 9, 300, 300, 300, 300, 300, 300, 300, 300),
    "original_dimension": (None, None, None, None, None, 29992, 26214, 18933, 36771, 4096, 4096, 4096, 4096),
}

# Table 2: skewness of the N10 distribution
SKEWNESS = {
    "original-metric": (1.65, 0.93, 0.40, 0.71, 0.77, 13.35, 21.93, 7.61, 4.89, 2.49, 2.38, 2.52, 2.80),
    "lmnn": (1.05, 0.63, 0.39, 0.61, 0.74, 3.86, 14.74, 7.63, 4.01, 3.10, 2.96, 2.80, 3.94),
    "itml": (0.96, 0.79, 0.10, 0.43, 0.70, 4.27, 19.65, 7.30, 2.39, 2.42, 2.27, 2.37, 2.69),
    "dml-eig": (0.78, 0.66, 0.41, 0.38, 0.59, 1.71, 1.45, 3.05, 1.34, 1.90, 1.77, 2.39, 2.17),
    "move-labeled": (1.04, 0.56, 0.32, 0.55, 0.59, 1.14, 2.88, 4.53, 1.44, 1.24, 0.97, 1.02, 1.23),
    "move-query": (1.67, 1.13, 0.32, 0.89, 1.18, 21.57, 33.36, 17.49, 6.71, 7.81, 7.83, 7.48, 11.65),
}

# Table 3: classification accuracy, in per cent
ACCURACY = {
    "original-metric": (86.8, 89.5, 97.2, 98.1, 68.1, 92.1, 76.9, 89.5, 96.1, 83.2, 51.6, 26.2, 82.2),
    "lmnn": (90.3, 90.0, 96.7, 98.1, 67.7, 94.7, 79.9, 91.5, 96.6, 83.0, 54.7, 24.4, 81.8),
    "itml": (87.7, 89.5, 97.8, 99.1, 65.0, 93.2, 77.0, 90.8, 96.5, 83.1, 51.3, 26.0, 82.4),
    "dml-eig": (87.7, 91.2, 96.7, 98.6, 66.5, 94.5, 73.3, 85.9, 95.7, 82.0, 53.5, 22.4, 81.6),
    "move-labeled": (89.6, 89.5, 97.2, 98.6, 70.8, 94.4, 81.6, 91.6, 96.7, 84.1, 52.4, 28.3, 83.4),
    "move-query": (79.7, 89.4, 97.2, 96.3, 62.3, 89.1, 70.0, 85.9, 95.4, 79.2, 43.3, 14.6, 78.7),
}

# Table 4: training time in seconds, document and image data sets only; Move-labeled is called "proposed"
SECONDS = {
    "lmnn": (1713.0, 1164.7, 676.2, 886.1, 1525.5, 1098.2, 15704.3, 317.3),
    "itml": (35.5, 1512.5, 124.1, 169.0, 1536.3, 577.6, 1126.4, 9211.2),
    "dml-eig": (762.2, 6145.9, 2710.4, 2350.6, 2048.0, 2084.7, 2006.1, 1787.1),
    "move-labeled": (6.0, 7.0, 4.6, 16.1, 9.5, 1.5, 4.1, 6.4),
}
# fmt: on
