local w = describeStrategy(obj)
return setPaused(obj, w.path, false, whyNotResume(obj, w))
