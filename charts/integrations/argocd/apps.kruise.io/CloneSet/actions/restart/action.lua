return restartPods(obj, describeStrategy(obj))
