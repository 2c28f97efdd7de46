"""A frame of a million rows: filter, derive, group, join."""

import numpy as np
import pandas as pd

N = 1_000_000

index = np.arange(N)
orders = pd.DataFrame(
    {
        "customer": index * 7919 % 1000,
        "amount": (index * 37 % 10_007) / 100.0,
        "day": index % 365,
    }
)
orders["weekend"] = orders["day"] % 7 >= 5
large = orders[(orders["amount"] > 20.0) & ~orders["weekend"]]
totals = large.groupby("customer")["amount"].sum()
customers = pd.DataFrame({"customer": np.arange(1000), "region": np.arange(1000) % 4})
joined = totals.reset_index().merge(customers, on="customer")
by_region = joined.groupby("region").agg(total=("amount", "sum"), best=("amount", "max"))
result = [
    (int(row.Index), round(float(row.total), 2), round(float(row.best), 2)) for row in by_region.itertuples()
]
