"""Learn features of handwritten digits without labels, and classify the digits linearly from them."""

from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import asynchebb as ah
from asynchebb.drawing import figures


def main(samples: int = 1797, picture: str = "digits_probe.png") -> float:
    digits = load_digits()
    X, X_test, y, y_test = train_test_split(digits.images[:samples], digits.target[:samples], random_state=0)

    features = ah.AsyncHebbian(100, r_b=2, random_state=0)  # takes images directly, at any scale
    probe = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000))
    with_features = make_pipeline(features, probe).fit(X, y).score(X_test, y_test)
    without = probe.fit(X.reshape(len(X), -1), y).score(X_test.reshape(len(X_test), -1), y_test)
    print(f"accuracy on unseen digits: {with_features:.3f} from features, {without:.3f} from pixels")

    codes = features.transform(X_test)
    figures.save(figures.fields(features.components_, features.image_shape_, codes.mean(axis=0)), picture)
    return with_features


if __name__ == "__main__":
    main()
