local function judgeJob()
  local health, status = judgeStarted(obj), readTable(obj, "status")
  local failed = readCondition(obj, "Failed", "True")
  if health or failed then return health or newHealth("Degraded", failed) end
  local complete = readCondition(obj, "Complete", "True")
  if complete then return newHealth("Healthy", complete) end

  local active, wanted = readNumber(status, "active"), readNumber(status, "desired")
  local succeeded = readNumber(status, "succeeded")
  local text = "Pods: " .. succeeded .. " of " .. wanted .. " succeeded, " .. readNumber(status, "failed") .. " failed, "
    .. active .. " active."
  local wait = readCondition(obj, "PausedByFailure", "True")
    or (status.phase == "paused" or readField(obj, "spec", "paused") == true) and pausedText
  local held = readCondition(obj, "BroadcastHeld", "True")
  wait = wait or held and "Held: " .. held or readCondition(obj, "NoNodeFits", "True")
  if wait then return judgeWaiting(active > 0, text .. " " .. wait) end
  local stuck = readCondition(obj, "PodsStuckTerminating", "True")
  if stuck then return newHealth("Degraded", stuck) end
  if neverEnds(obj) and active == 0 and succeeded + readNumber(status, "failed") >= wanted then
    return newHealth("Healthy", text .. " The job keeps on for nodes to come.")
  end
  return newHealth("Progressing", text)
end

return judgeJob()
