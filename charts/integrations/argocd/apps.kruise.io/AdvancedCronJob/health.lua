local function judgeJob()
  local health, invalid = judgeController(obj), readCondition(obj, "ScheduleValid", "False")
  if health or invalid then return health or newHealth("Degraded", invalid) end
  local valid = findCondition(obj, "ScheduleValid")
  if not valid or readNumber(valid, "observedGeneration") < readNumber(obj, "metadata", "generation") then
    return newHealth("Progressing", unobserved)
  end

  local text = "Active runs: " .. #readTable(obj, "status", "active") .. "."
  if readField(obj, "spec", "paused") == true then return newHealth("Suspended", text .. " " .. pausedText) end
  local held = readCondition(obj, "RunHeld", "True")
  if held and readField(findCondition(obj, "RunHeld"), "reason") ~= "JobAlreadyActive" then
    return newHealth("Suspended", text .. " Held: " .. held)
  end
  local skipped = held or readCondition(obj, "RunLeftOut", "True")
  return newHealth("Healthy", text .. (skipped and " " .. skipped or ""))
end

return judgeJob()
