"""Wrong samplers, kept on purpose: each runs through the door that implementations use, and each must be caught.

refspec check verification.faults.chain:ResidualByAbsoluteValue
"""
