"""Table work: problems over messy data, by the product and by the bare model.

A problem is a function: its signature and docstring are what a user would write, its body is the reference
solution, which nobody who is asked sees. The data are made anew from a seed, by generators of our own.

**How an answer is judged.** Each side is given the data of one hidden seed, as a user has one table and wants
one value. The product's value is that of the task's call, with the public checks; the bare model's is that of
its function, which runs in the same sandbox on the same data. The judge compares either with the reference's
value for the same data. We do not judge by `Run.code`: it is there only where the model ended by defining the
function, so that a right value by any other way would not count. Nothing public has the hidden seed's data:
the docstrings show data of their own, and both sides see the same preview of the inputs.

A *confident wrong answer* is a value that the product accepted, or that the bare model's function returned,
and that is wrong: the user gets it and is not told.
"""
