"""Model selection on held-out queries: a grid of λ and k, a race of movers, maps learned from pairs.

All of them share folds, scores with their standard errors, and the values of λ.
"""
