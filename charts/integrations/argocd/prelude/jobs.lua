-- Health of jobs. They have no observedGeneration: a job begins with the startTime of its status.

-- describeJob describes a job with a field paused.
local function describeJob(obj)
  return {
    paused = readField(obj, "spec", "paused") == true, ended = type(readField(obj, "status", "completionTime")) == "string",
  }
end

-- whyNotPauseJob is why a job cannot be paused, nil if it can.
local function whyNotPauseJob(_, job)
  return job.ended and "The job has ended." or job.paused and "spec.paused is true already." or nil
end

-- whyNotResumeJob is why a job cannot be let go on, nil if it can.
local function whyNotResumeJob(_, job)
  return job.ended and "The job has ended." or not job.paused and "spec.paused is not true." or nil
end

-- neverEnds reports whether a job keeps on for nodes to come.
local function neverEnds(obj)
  return readField(obj, "spec", "completionPolicy", "type") == "Never"
end

-- pausedText says that a job is paused.
local pausedText = "spec.paused is true: nothing is started until it is false."

-- judgePulls is the health of a job that pulls images: done of wanted are, and failure is why some are not, nil if all may be.
-- unit names what is counted.
local function judgePulls(obj, unit, done, wanted, failure)
  local text, held = done .. " of " .. wanted .. " " .. unit, readCondition(obj, "PullHeld", "True")
  local isStarted = readNumber(obj, "status", "active") > 0
  if failure then return newHealth("Degraded", failure) end
  if readField(obj, "status", "completionTime") or neverEnds(obj) and done == wanted then
    return newHealth("Healthy", text .. ".")
  end
  if readField(obj, "spec", "parallelism") == 0 then
    return judgeWaiting(isStarted, text .. ". spec.parallelism is 0: no pull begins until it is greater.")
  end
  if held then return judgeWaiting(isStarted, text .. ". Held: " .. held) end
  return newHealth("Progressing", text .. ".")
end
