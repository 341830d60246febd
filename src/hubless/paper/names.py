"""The names of data sets, methods and passes, and their titles; it imports nothing, so that help is fast."""

KINDS = {  # data sets in the order of the paper, as files name them and as tables do
    "UCI": {
        "ionosphere": "ionosphere",
        "balance-scale": "balance-scale",
        "iris": "iris",
        "wine": "wine",
        "glass": "glass",
    },
    "document": {"rcv": "RCV", "news": "News", "reuters": "Reuters", "tdt": "TDT"},
    "image": {"awa": "AwA", "cub": "CUB", "sun": "SUN", "apy": "aPY"},
    "extra": {"banking77": "banking77"},  # not in the paper
}
LARGE_DATASETS = KINDS["document"] | KINDS["image"]  # those that the paper times
PAPER_DATASETS = KINDS["UCI"] | LARGE_DATASETS
DATASETS = PAPER_DATASETS | KINDS["extra"]
KIND_OF = {name: kind for kind, titles in KINDS.items() for name in titles}

PAPER_METHODS = {
    "original-metric": "original metric",
    "lmnn": "LMNN",
    "itml": "ITML",
    "dml-eig": "DML-eig",
    "move-labeled": "Move-labeled",
    "move-query": "Move-query",
}
UNTRAINED = ("original-metric", "scale")  # methods without a training time
METHODS = PAPER_METHODS | {"mmc": "MMC", "nca": "NCA", "scale": "scale", "auto": "auto"}

PASSES = ("cells", "times")  # of the harness: first the cells, then their training times
