return listActions(obj, describeJob(obj), {pause = whyNotPauseJob, resume = whyNotResumeJob})
