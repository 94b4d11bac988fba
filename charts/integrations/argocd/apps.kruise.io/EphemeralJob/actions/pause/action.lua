return setPaused(obj, {"spec"}, true, whyNotPauseJob(obj, describeJob(obj)))
