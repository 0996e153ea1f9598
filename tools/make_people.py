"""Makes the invented table that `privcov demo` releases: nobody in it exists.

python tools/make_people.py > src/privcov/demo/people.csv
"""

import numpy as np

rng = np.random.default_rng(20140)
n = 4000
age = np.clip(rng.gamma(9.0, 5.2, n), 18, 94).round()
sex = rng.choice(["F", "M"], n)
educ = np.clip(rng.normal(11 + 0.8 * (age < 60), 3.2, n), 1, 20).round()
married = rng.random(n) < 1 / (1 + np.exp(-(age - 33) / 9))
income = 2.9 * educ + 0.33 * age + 4.5 * married + 3.0 * (sex == "M") - 12 + rng.normal(0, 16, n)
income = np.clip(income, 0, 150).round(1)
print("age,sex,educ,married,income")
for row in zip(age, sex, educ, married, income, strict=True):
    print(f"{row[0]:.0f},{row[1]},{row[2]:.0f},{'yes' if row[3] else 'no'},{row[4]:.1f}")
