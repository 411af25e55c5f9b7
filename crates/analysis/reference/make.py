"""Values that the tests of this crate hold theirs against, from SciPy and statsmodels.

    python3 -m venv venv && venv/bin/pip install scipy==1.17.1 statsmodels==0.15.0 pandas
    venv/bin/python crates/analysis/reference/make.py > crates/analysis/reference/values.txt

One value a line: its name, then numbers. Lines that begin with `trial` are data made here.
"""

import itertools

import numpy as np
import pandas as pd
import scipy.optimize
import scipy.stats
import statsmodels.api as sm
from statsmodels.formula.api import ols


def say(name, *values):
    print(name, *(repr(float(value)) for value in values))


# Hollander and Wolfe, Nonparametric Statistical Methods, 1999, example 6.2.
motivation = [[40, 35, 38, 43, 44, 41], [38, 40, 47, 44, 40, 42], [48, 40, 45, 43, 46, 44]]
labels = np.repeat([1, 2, 3], 6)
say("motivation_tau_b", scipy.stats.kendalltau(labels, sum(motivation, [])).statistic)
rng = np.random.default_rng(1)
values = np.array(sum(motivation, []))


def j(order):
    groups = [order[labels == label] for label in (1, 2, 3)]
    pairs = itertools.combinations(groups, 2)
    return sum((a[:, None] < b).sum() + (a[:, None] == b).sum() / 2 for a, b in pairs)


draws = np.array([j(rng.permutation(values)) for _ in range(100_000)])
say("motivation_p", 2 * np.mean(draws >= j(values)))

# Theil and Sen over unequal places with ties: the slopes of ln y over log2 x.
x = [1, 1, 2, 2, 4, 4, 16]
y = [90, 110, 150, 160, 250, 210, 300]
pairs = [
    (np.log(y[b]) - np.log(y[a])) / (np.log2(x[b]) - np.log2(x[a]))
    for a, b in itertools.combinations(range(7), 2)
    if x[a] != x[b]
]
say("slope", np.median(pairs))
say("slope_by_scipy", scipy.stats.theilslopes(np.log(y), np.log2(x)).slope)

# The universal scalability law on ln X. Data: Gunther, Guerrilla Capacity Planning, 2007.
curves = {
    "raytracer": (
        [1, 4, 8, 12, 16, 20, 24, 28, 32, 48, 64],
        [20, 78, 130, 170, 190, 210, 220, 245, 255, 280, 310],
    ),
    "specsdm91": (
        [1, 18, 36, 72, 108, 144, 216],
        [64.9, 995.9, 1652.4, 1853.2, 1828.9, 1775.0, 1702.2],
    ),
}
for name, (clients, rates) in curves.items():
    n, ln_x = np.array(clients, float), np.log(rates)
    for law, free in (("linear", 0), ("amdahl", 1), ("universal", 2)):

        def residuals(given, free=free):
            sigma, kappa = (list(given[1:]) + [0.0, 0.0])[:2]
            return given[0] + np.log(n) - np.log(1 + sigma * (n - 1) + kappa * n * (n - 1)) - ln_x

        start = [ln_x[0], 0.01, 1e-4][: free + 1]
        low, high = [-np.inf, 0, 0][: free + 1], [np.inf, 1, np.inf][: free + 1]
        found = scipy.optimize.least_squares(
            residuals, start, bounds=(low, high), x_scale=[1, 0.01, 1e-5][: free + 1],
            xtol=1e-15, ftol=1e-15, gtol=1e-15, max_nfev=10_000,
        )
        k = free + 2
        squares = 2 * found.cost
        aicc = len(n) * np.log(squares / len(n)) + 2 * k + 2 * k * (k + 1) / (len(n) - k - 1)
        sigma, kappa = (list(found.x[1:]) + [0.0, 0.0])[:2]
        say(f"{name}_{law}", np.exp(found.x[0]), sigma, kappa, squares, aicc)

# Three factors with unequal repeats in blocks; some combinations are missing.
rows = []
for block, a, b, c in itertools.product(range(8), range(3), range(2), range(3)):
    if (a, b, c) in {(2, 1, 2), (0, 0, 1)} or rng.random() < 0.15:
        continue
    ln_y = 0.3 * a + 0.1 * b - 0.2 * a * b + 0.05 * c * a + 0.02 * block
    ln_y += 0.1 * rng.standard_normal()
    rows.append((block, a, b, c, round(float(np.exp(ln_y)), 4)))
for row in rows:
    print("trial", *row)
frame = pd.DataFrame(rows, columns=["block", "a", "b", "c", "y"])
frame["y"] = np.log(frame["y"])
model = ols("y ~ C(block) + (C(a) + C(b) + C(c))**2", frame).fit()
table = sm.stats.anova_lm(model, typ=2)
for term in ["a", "b", "c", "a:b", "a:c", "b:c"]:
    row = ":".join(f"C({name})" for name in term.split(":"))
    say(term, *table.loc[row, ["df", "sum_sq", "F", "PR(>F)"]])
say("block", *table.loc["C(block)", ["df", "sum_sq", "F", "PR(>F)"]])
say("residual", *table.loc["Residual", ["df", "sum_sq"]])
