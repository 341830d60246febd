"""Learning from more objects than fit in memory: block by block, by sums, in this process or on Dask."""
