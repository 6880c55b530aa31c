"""The door to an implementation: a Python object with some of the operations of ``protocol``, or a bare function."""
