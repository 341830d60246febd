"""The paper's published figures: published.csv has its Tables 1 to 4 (arXiv:1806.03945, Section 5).

Table 1 describes the data sets (the paper's prose has the classes of Reuters and TDT swapped; the table is
right), Table 2 has the skewness of N10, Table 3 the accuracy in per cent, Table 4 the training time in
seconds, of documents and images only, where Move-labeled is called "proposed".
"""

import csv
from importlib.resources import files

DIMENSION = 300  # of the document and image data sets, after principal component analysis
SPLITS = 4
MAHALANOBIS = ("lmnn", "itml", "dml-eig")


def _read() -> dict[int, dict[str, dict[str, float]]]:
    tables: dict[int, dict[str, dict[str, float]]] = {}
    for line in csv.DictReader(files(__package__).joinpath("published.csv").read_text().splitlines()):
        number, row = int(line.pop("table")), line.pop("row")
        figures = {name: float(text) if "." in text else int(text) for name, text in line.items() if text}
        tables.setdefault(number, {})[row] = figures
    return tables


TABLES = _read()  # by number, row and data set
