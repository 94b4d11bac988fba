local w = describeStrategy(obj)
return setPaused(obj, w.path, true, whyNotPause(obj, w))
