"""What differs from the report's set-up, and why."""

from __future__ import annotations

NOTES = (
    "Data. The report used 1,223,992 Californians of the Census sample (it dates them 2014; the extract is of Census "
    "2000). The public extract is a random 10,000 of them. Figures 2 to 5, 18 to 20 and Table 3 are made on the "
    "extract and on a bootstrap of it to 1,223,992 rows, which has the report's size but no more people than the "
    "extract: its largest income is 713,000 where the full file's may be larger, so ranges, and with them noise in "
    "dollars, may be too small here.",
    "Pictures. Our copy of the report has its text and tables but not its plotted points, so figures can be compared "
    "with what it says of them, not with their curves; it does not give the values of C, n or d along its axes.",
    "Which σ. The printed formula lacks a division by ε, and the text does not say which was run. So everything is "
    "made with both; the claims on Figures 2 and 3 and on Table 3 say which of them the report's own numbers fit.",
    "Units. The report's upscaling formula needs its offsets times n when applied to sums, which is how it is applied "
    "here. It uses the columns' exact means, said to be given privately elsewhere, so noise on the intercept's "
    "entries is not carried along with the units. Where means are far above standard deviations, as in the simulated "
    "tables, that makes released matrices indefinite and leaves the regression to the repair.",
    "Simulated tables. The noise on Y is uniform in the report's section 3.1 and normal in 3.3; here normal. A table "
    "is drawn anew in each run. All four other columns and the intercept are regressors. The repair is applied to the "
    "whole released matrix in original units. s² has n − k − 1 degrees of freedom as in section 1.3, where Algorithm 2 "
    "has one more.",
    "privcov releases by its gaussian mechanism under add-remove, the relation for which the report's sensitivity of "
    "one holds, with bounds equal to the ranges that the report takes from its data (a release may not do that).",
    "Slips of the report that do not touch a measurement: its [0, 1] scaling has the sign of the denominator wrong, "
    "AᵀA is called n²-dimensional (d²), Figures 9 and 10 are captioned as norms but plotted against n and d, and its "
    "Figure 2 has five columns, so it is not the matrix of the three attributes its caption's section names.",
)
