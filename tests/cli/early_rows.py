"""Commands that must be refused early, and words of their messages; `small_world.py` has the files.

A row of ROWS is refused before any row of a store is read, one of AFTER_READING before anything is learned.
"""

LABELED = "v.npy --items items.csv --labels category"
ASKED = "--queries q.npy --query-items q.csv"
JUDGED = f"v.npy --items items.csv --pairs pairs.tsv {ASKED} --query-id id"
LONG = "n" * 250  # with the ending of a temporary name it is longer than names may be

# outputs: what -o may be, in the words of the message
PLACES = {
    "notes.txt/out": ["notes.txt is a file", "Give"],
    "notes.txt/new/out": ["notes.txt is a file", "Give"],
    "dangling": ["dangling is a link to", "nowhere", "Remove the link"],
    "dangling/out": ["dangling is a link to", "nowhere", "Remove the link"],
    "loop": ["loop is a link to", "Remove the link"],
    LONG: ["too long", "shorter"],
    f"new/{LONG}": ["too long", "shorter"],
}
WRITING = {  # verb → command, to which the output is added
    "fit": f"fit {LABELED} -o",
    "fit --pairs": f"fit {JUDGED} -o",
    "fit --queries": "fit v.npy --queries q.npy -o",
    "fit --memory": f"fit {LABELED} --memory 2GB -o",
    "fit --scratch": f"fit {LABELED} -o new --scratch",
    "update": f"update model {LABELED} -o",
    "merge": "merge model model-wide -o",
    "export": "export model numpy -o",
    "apply": "apply model v.npy -o",
    "report": f"report {LABELED} -o",
    "report --pairs": f"report {JUDGED} -o",
    "report --parquet": f"report {LABELED} -o new.html --parquet",
    "report --model": f"report {LABELED} {ASKED} --model model -o",
    "evaluate --report": f"evaluate model {LABELED} {ASKED} --report",
    "evaluate --parquet": f"evaluate model {LABELED} {ASKED} --report new.html --parquet",
    "demo --report": "demo --report",
    "reproduce": "reproduce --datasets iris --methods original-metric --splits 1 --out",
    "reproduce --report": "reproduce --datasets iris --splits 1 --out new --report",
    "tables": "tables raw --out",
}
ADDS_SUFFIX = {"apply"}  # its target gets the suffix of the source
FOLDERS = {"fit --scratch", "reproduce", "reproduce --report", "tables"}  # in which files have short names
ROWS = {
    f"{verb} to {place[:20]}": (f"{line} {place}", words)
    for verb, line in WRITING.items()
    for place, words in PLACES.items()
    if not (verb in ADDS_SUFFIX and place != "notes.txt/out") and not (verb in FOLDERS and LONG in place)
}
ROWS |= {
    # --- outputs that exist, or are in the way of inputs
    "fit to a file": (f"fit {LABELED} -o notes.txt", ["notes.txt is a file", "Give a new or an empty"]),
    "fit to other data": (f"fit {LABELED} -o parts", ["0.npy", "Give a new or an empty folder"]),
    "fit among the items": ("fit parts --queries q.npy -o parts/model", ["among the items", "outside"]),
    "fit among the queries": ("fit v.npy --queries parts -o parts/model", ["among the items", "outside"]),
    "apply: no source": ("apply model no.npy -o new", ["no.npy does not exist", "Give a file"]),
    "scratch among the items": (
        "fit files --labels category --scratch files/s -o new",
        ["among the items", "outside"],
    ),
    "scratch is a file": (f"fit {LABELED} --scratch notes.txt -o new", ["notes.txt is a file", "Give"]),
    "update to a model": (f"update model {LABELED} -o model-wide", ["contains a model", "-o another name"]),
    "update to a file": (f"update model {LABELED} -o notes.txt", ["notes.txt is a file", "Give"]),
    "merge to other data": ("merge model model-wide -o parts", ["0.npy", "Give a new or an empty folder"]),
    "export to a folder": ("export model numpy -o parts", ["exists already", "new folder"]),
    "apply to the source": ("apply model v.npy -o v.npy", ["exists already", "Give another name"]),
    "apply to an input": ("apply model v.npy -o q.npy", ["exists already", "Give another name"]),
    "apply among the items": ("apply model parts -o parts/moved", ["among the items", "outside"]),
    "apply to no folder": ("apply model v.npy -o nowhere/moved.npy", ["nowhere does not exist", "Create it"]),
    "apply to a dangling link": (
        "apply model v.npy -o dangling.npy",
        ["dangling.npy is a link to", "Remove the link"],
    ),
    "apply into a dangling link": ("apply model v.npy -o dangling/v", ["dangling is a link to", "Remove"]),
    "apply to a long name": (f"apply model v.npy -o {LONG}", ["too long", "shorter"]),
    "report to a file": (f"report {LABELED} -o notes.txt", ["not a hubless page", "another name"]),
    "report to the table": (f"report {LABELED} -o items.csv", ["not a hubless page", "another name"]),
    "report to a folder": (f"report {LABELED} -o parts", ["parts is a folder", "name of a file"]),
    "page and table are one": (f"report {LABELED} -o a.html --parquet a.html", ["both be", "different"]),
    "table to a moved index": (
        f"report {LABELED} -o a.html --parquet moved.parquet",
        ["not a table of hubless", "another name"],
    ),
    "table among the items": (
        "report files --labels category -o a.html --parquet files/1.parquet",
        ["among the items", "outside"],
    ),
    "page among the items": ("report files --labels category -o files/a.html", ["among the items"]),
    "report to a dangling page": (
        f"report {LABELED} -o dangling.html",
        ["dangling.html is a link to", "Remove the link"],
    ),
    "parquet alone": (f"evaluate model {LABELED} {ASKED} --parquet a.parquet", ["--report"]),
    # --- inputs that do not exist
    "fit: no table": ("fit v.npy --items no.csv --labels category -o new", ["no.csv does not exist"]),
    "fit: no source": ("fit no.npy --labels category -o new", ["no.npy does not exist"]),
    "fit: no queries": ("fit v.npy --queries no.npy -o new", ["no.npy does not exist"]),
    "fit: no table of queries": (
        "fit v.npy --queries q.npy --query-items no.csv -o new",
        ["no.csv does not exist"],
    ),
    "fit: no pairs": (f"fit {JUDGED} --pairs no.tsv -o new", ["no.tsv does not exist"]),
    "fit: pairs without columns": (f"fit {JUDGED} --pairs bad.tsv -o new", ["query-id", "it has"]),
    "fit: pairs without queries": ("fit v.npy --pairs pairs.tsv -o new", ["--queries SOURCE"]),
    "evaluate: no pairs": (
        f"evaluate model v.npy --items items.csv {ASKED} --pairs no.tsv",
        ["no.tsv does not exist"],
    ),
    "report: no pairs": (f"report {JUDGED} --pairs no.tsv -o new.html", ["no.tsv does not exist"]),
    "evaluate: no queries": (f"evaluate model {LABELED} --queries no.npy", ["no.npy does not exist"]),
    "evaluate log: no queries": ("evaluate model v.npy --queries no.npy", ["no.npy does not exist"]),
    "report: no queries": (f"report {LABELED} --queries no.npy -o new.html", ["no.npy does not exist"]),
    "predict: no queries": (
        "predict model no.npy --source v.npy --items items.csv",
        ["no.npy does not exist"],
    ),
    "predict: no source": ("predict model q.npy --source no.npy", ["no.npy does not exist"]),
    "predict: unnamed source": ("predict model q.npy", ["--source SOURCE"]),
    "preview: no queries": ("preview model v.npy --queries no.npy", ["no.npy does not exist"]),
    "doctor: no source": ("doctor no.npy --queries q.npy", ["no.npy does not exist"]),
    "doctor: no queries": ("doctor v.npy --queries no.npy", ["no.npy does not exist"]),
    "tables: no results": ("tables no --out new", ["is not a folder", "give the folder"]),
    **{
        f"{verb}: no model": (line.format("no-model"), ["model.safetensors is missing", "Give the folder"])
        for verb, line in {
            "apply": "apply {} v.npy -o new",
            "evaluate": f"evaluate {{}} {LABELED} {ASKED}",
            "evaluate log": "evaluate {} v.npy --queries q.npy",
            "export": "export {} numpy -o new",
            "merge": "merge model {} -o new",
            "predict": "predict {} q.npy --source v.npy --items items.csv",
            "preview": "preview {} v.npy --queries q.npy",
            "report": f"report {LABELED} {ASKED} --model {{}} -o new.html",
            "update": f"update {{}} {LABELED} -o new",
        }.items()
    },
    # --- columns
    **{
        f"{verb}: no column": (line.format("colour"), ["no column 'colour'", "it has", "category"])
        for verb, line in {
            "doctor --text": "doctor v.npy --items items.csv --text {}",
            "fit": "fit v.npy --items items.csv --labels {} -o new",
            "fit --memory": "fit v.npy --items items.csv --labels {} --memory 2GB -o new",
            "fit --dask": "fit v.npy --items items.csv --labels {} --dask -o new",
            "fit --id": "fit v.npy --items items.csv --labels category --id {} -o new",
            "fit --query-id": f"fit {JUDGED} --query-id {{}} -o new",
            "update": "update model v.npy --items items.csv --labels {} -o new",
            "evaluate": f"evaluate model v.npy --items items.csv --labels {{}} {ASKED}",
            "evaluate --query-labels": f"evaluate model {LABELED} {ASKED} --query-labels {{}}",
            "evaluate --text": f"evaluate model {LABELED} {ASKED} --report new.html --text {{}}",
            "evaluate --image": f"evaluate model {LABELED} {ASKED} --report new.html --image {{}}",
            "report": "report v.npy --items items.csv --labels {} -o new.html",
            "report --query-labels": f"report {LABELED} {ASKED} --query-labels {{}} -o new.html",
            "report --text": f"report {LABELED} --text {{}} -o new.html",
            "report --query-text": f"report {LABELED} {ASKED} --query-text {{}} -o new.html",
            "report --image": f"report {LABELED} --image {{}} -o new.html",
            "predict": "predict model q.npy --source v.npy --items items.csv --labels {}",
            "preview --text": "preview model v.npy --items items.csv --queries q.npy --text {}",
            "apply, of the model": "apply model-by-{} v.npy --items items.csv -o new",
            "evaluate, of the model": f"evaluate model-by-{{}} {LABELED} {ASKED}",
            "evaluate log, of the model": "evaluate model-by-{} v.npy --items items.csv --queries q.npy",
            "predict, of the model": "predict model-by-{} q.npy --source v.npy --items items.csv "
            "--labels category",
            "preview, of the model": "preview model-by-{} v.npy --items items.csv --queries q.npy",
        }.items()
    },
    "report: no column of query classes": (
        f"report {LABELED} --queries q.npy -o new.html",
        ["q.npy has no column 'category'", "it has no columns"],
    ),
    "evaluate: no column of query classes": (
        f"evaluate model {LABELED} --queries q.npy",
        ["q.npy has no column 'category'", "it has no columns"],
    ),
    # --- what vectors and labels are
    "doctor: whole numbers": (
        "doctor whole.npy",
        ["got int64", 'np.save("vectors.npy", X.astype("float32"))'],
    ),
    "doctor: a text file": ("doctor items.csv", ["not a known store", "np.loadtxt"]),
    "fit: labels of two columns": (
        "fit v.npy --labels two.npy -o new",
        ["two.npy must have one label per row"],
    ),
    # --- widths
    "fit: width of a log": ("fit v.npy --queries wide.npy -o new", ["6 columns", "have 4", "--pairs"]),
    "report: width of queries": (
        f"report {LABELED} --queries wide.npy --query-items q.csv -o new.html",
        ["6 columns", "of 4", "hubless fit --pairs"],
    ),
    "evaluate: width of queries": (
        f"evaluate model {LABELED} --queries wide.npy --query-items q.csv",
        ["6 columns", "have 4", "Give queries of 4"],
    ),
    "evaluate log: width of queries": (
        "evaluate model v.npy --queries wide.npy",
        ["6 columns", "have 4", "Give queries of 4"],
    ),
    "evaluate: width across": (
        f"evaluate model-across v.npy --items items.csv --pairs pairs.tsv {ASKED}",
        ["4 columns", "of 6", "Give such queries"],
    ),
    "evaluate log: across": ("evaluate model-across v.npy --queries wide.npy", ["4 columns", "--pairs"]),
    "report: across": (
        f"report {LABELED} {ASKED} --model model-across -o new.html",
        ["4 columns", "of 6", "Give such queries"],
    ),
    "predict: width of queries": (
        "predict model wide.npy --source v.npy --items items.csv",
        ["6 columns", "have 4", "Give queries of 4"],
    ),
    "predict by a moved index": (
        "predict model wide.npy --source moved.npy --items items.csv",
        ["6 columns", "have 4", "Give queries of 4"],
    ),
    "predict by a classifier": ("predict classifier wide.npy", ["6 columns", "4", "Give queries of 4"]),
    "preview: width of queries": (
        "preview model v.npy --queries wide.npy",
        ["6 columns", "have 4", "Give queries of 4"],
    ),
    "doctor: width of queries": ("doctor v.npy --queries wide.npy", ["6 columns", "have 4", "--pairs"]),
    **{
        f"{verb}: width of the items": (line, ["v.npy has vectors of 4 columns", "for 6", "Give"])
        for verb, line in {
            "apply": "apply model-wide v.npy -o new",
            "evaluate": f"evaluate model-wide {LABELED} {ASKED}",
            "evaluate log": "evaluate model-wide v.npy --queries wide.npy",
            "predict": "predict model-wide wide.npy --source v.npy --items items.csv --labels category",
            "preview": "preview model-wide v.npy --queries wide.npy",
            "report": f"report {LABELED} {ASKED} --model model-wide -o new.html",
            "update": f"update model-wide {LABELED} -o new",
        }.items()
    },
    "merge: widths": ("merge model model-wide -o new", ["got 4 and 6", "Fit one again"]),
    # --- metrics
    **{
        f"{verb}: metric": (f"{line} --metric cosine", ["by cosine", "for l2", "Fit one for this metric"])
        for verb, line in {
            "apply": "apply model v.npy -o new",
            "evaluate": f"evaluate model {LABELED} {ASKED}",
            "evaluate log": "evaluate model v.npy --queries q.npy",
            "predict": "predict model q.npy --source v.npy --items items.csv",
            "preview": "preview model v.npy --queries q.npy",
            "report": f"report {LABELED} {ASKED} --model model -o new.html",
            "update": f"update model {LABELED} -o new",
        }.items()
    },
    "fit --column: metric": (
        "fit v.npy --metric cosine --queries q.npy --column -o new",
        ["by cosine", "Leave out --column"],
    ),
    # --- numbers of items
    **{
        f"{verb}: no items": (line, ["empty.npy is empty", "Give"])
        for verb, line in {
            "doctor": "doctor empty.npy",
            "fit": "fit empty.npy --queries q.npy -o new",
            "evaluate log": "evaluate model empty.npy --queries q.npy",
            "doctor --queries": "doctor v.npy --queries empty.npy",
            "fit --queries": "fit v.npy --queries empty.npy -o new",
            "evaluate --queries": "evaluate model v.npy --queries empty.npy",
            "preview --queries": "preview model v.npy --queries empty.npy",
            "predict": "predict model empty.npy --source v.npy --items items.csv",
        }.items()
    },
    "fit: a short log": ("fit v.npy --queries q.npy -o new", ["10", "50"]),
    "report: few items": (
        "report few.npy --items few.csv --labels category -o new.html",
        ["5 items are too few", "8 or more"],
    ),
    "preview: rows": ("preview model v.npy --queries q.npy --rows 10", ["there are 10 queries"]),
    # --- what was moved already
    **{
        f"{verb}: moved already": (line, ["already moved", "give the original"])
        for verb, line in {
            "fit": "fit moved.npy --items items.csv --labels category -o new",
            "fit --pairs": f"fit moved.npy --items items.csv --pairs pairs.tsv {ASKED} -o new",
            "fit --memory": "fit moved.npy --items items.csv --labels category --memory 2GB -o new",
            "evaluate": f"evaluate model moved.npy --items items.csv --labels category {ASKED}",
            "evaluate log": "evaluate model moved.npy --queries q.npy",
            "report": "report moved.npy --items items.csv --labels category -o new.html",
            "apply": "apply model moved.npy -o new",
            "update": "update model moved.npy --items items.csv --labels category -o new",
            "preview": "preview model moved.npy --queries q.npy",
        }.items()
    },
    # --- options that do not go together
    "fit: memory and Dask": (f"fit {LABELED} --memory 2GB --dask -o new", ["--memory", "leave it out"]),
    "fit: little memory": (f"fit {LABELED} --memory 1MB -o new", ["at least", "MB"]),
    "report: a model alone": (f"report {LABELED} --model model -o new.html", ["--queries SOURCE"]),
    "update: pairs": ("update model-cosine v.npy --labels category -o new", ["category"]),
    "reproduce: methods of pages": (
        "reproduce --datasets iris --methods lmnn --splits 1 --out new --report pages",
        ["move-labeled", "--methods"],
    ),
    "reproduce: device": (
        "reproduce --datasets iris --methods original-metric --splits 1 --out new --device moon",
        ["moon", "--device cpu"],
    ),
}
# Commands that need a package which may be missing.
PACKAGES = {
    "report --parquet": (f"report {LABELED} -o new.html --parquet new.parquet", "pyarrow", "files"),
    "fit --dask": (f"fit {LABELED} --dask -o new", "distributed", "dask"),
    "apply --dask": ("apply model-cosine v.npy --dask -o new", "distributed", "dask"),
    "export": ("export model onnx -o new", "onnx", "onnx"),
}
# What shows only in the rows: they are read, but nothing is learned or searched for.
AFTER_READING = {
    "fit: one class": (
        "fit v.npy --items one.csv --labels category -o new",
        ["'category' has 1 class", "two or more"],
    ),
    "fit: a column of ids": ("fit v.npy --labels lines.npy -o new", ["no two of", "a column of ids"]),
    "fit --memory: a column of ids": (
        "fit v.npy --labels lines.npy --memory 2GB -o new",
        ["no two of", "a column of ids"],
    ),
    "fit: no label": ("fit v.npy --items none.csv --labels category -o new", ["no item", "'category'"]),
    "fit --memory: one class": (
        "fit v.npy --items one.csv --labels category --memory 2GB -o new",
        ["'category' has 1 class", "two or more"],
    ),
    "fit --memory: no label": (
        "fit v.npy --items none.csv --labels category --memory 2GB -o new",
        ["no object with a label"],
    ),
    "report: one class": (
        "report v.npy --items one.csv --labels category -o new.html",
        ["'category' has 1 class", "two or more"],
    ),
    "report: no query with a class": (
        f"report {LABELED} --queries q.npy --query-items q-none.csv -o new.html",
        ["no query", "'category'"],
    ),
    "report --pairs: unknown queries": (f"report {JUDGED} --pairs strange.tsv -o new.html", ["nobody"]),
    "report --pairs: few": (f"report {JUDGED} -o new.html", ["10 judged queries are too few", "14 or more"]),
    "fit --pairs: unknown queries": (f"fit {JUDGED} --pairs strange.tsv -o new", ["nobody"]),
    "evaluate: no query with a class": (
        f"evaluate model {LABELED} --queries q.npy --query-items q-none.csv",
        ["no query", "'category'"],
    ),
    "update: no label": (
        "update model v.npy --items none.csv --labels category -o new",
        ["no item", "'category'"],
    ),
}
