return promoteRollout(obj, describeStrategy(obj))
