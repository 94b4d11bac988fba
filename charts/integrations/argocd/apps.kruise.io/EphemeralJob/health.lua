local function judgeJob()
  local health, status = judgeController(obj), readTable(obj, "status")
  local failed = readCondition(obj, "JobError", "True") or readCondition(obj, "JobFailed", "True")
  if health or failed then return health or newHealth("Degraded", failed) end
  if not status.startTime then return newHealth("Progressing", unobserved) end

  local running, matched = readNumber(status, "running"), readNumber(status, "match")
  local text = "Pods: " .. readNumber(status, "succeeded") .. " of " .. matched .. " succeeded, " .. running .. " running."
  if status.phase == "Succeeded" then return newHealth("Healthy", text) end
  if status.phase == "Failed" or status.phase == "Error" then return newHealth("Degraded", text) end
  if status.phase == "Paused" or readField(obj, "spec", "paused") == true then return judgeWaiting(running > 0, text .. " " .. pausedText) end
  local held = readCondition(obj, "EphemeralJobHeld", "True")
  if held then return judgeWaiting(running > 0, text .. " Held: " .. held) end
  local denied = readCondition(obj, "EphemeralJobDenied", "True")
  if denied then text = text .. " Denied: " .. denied end
  if matched == 0 then return judgeWaiting(false, text .. " No pod matches the selector.") end
  local unready = readCondition(obj, "EphemeralJobWaitingForNodes", "True")
  return newHealth("Progressing", text .. (unready and " " .. unready or ""))
end

return judgeJob()
