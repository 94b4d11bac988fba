return judgeRollout(obj, addSigns(obj, countPods(obj, describeStrategy(obj))))
