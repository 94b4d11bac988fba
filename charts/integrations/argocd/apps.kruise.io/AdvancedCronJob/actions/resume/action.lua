return setPaused(obj, {"spec"}, false, whyNotResumeJob(obj, describeJob(obj)))
