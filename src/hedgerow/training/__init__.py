"""Training without scikit-learn: plan, reserve, grow, release, as plain functions of a recipe, rows and a budget."""
