"""How a law is judged: the e-value, its planning, the error ledger, the PIT, and chi-square beside them.

A leaf: it knows counts and null rows, and nothing of models or samplers.
"""
