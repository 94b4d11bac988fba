local function judgeRequest()
  local status, states = readTable(obj, "status"), readTable(obj, "status", "containerRecreateStates")
  local succeeded, isBusy, failure = 0, false, nil
  for _, state in ipairs(states) do
    local phase = readField(state, "phase")
    if phase == "Succeeded" then succeeded = succeeded + 1 end
    if phase == "Recreating" then isBusy = true end
    if phase == "Failed" then failure = failure or "Container " .. readText(state, "name") .. ": " .. readText(state, "message") end
  end
  local text = succeeded .. " of " .. #states .. " containers have restarted."
  if status.phase == "Completed" then
    if readText(status, "message") ~= "" then failure = failure or status.message end
    if failure then return newHealth("Degraded", text .. " " .. failure) end
    return newHealth(succeeded == #states and "Healthy" or "Degraded", text)
  end
  if failure then return newHealth("Degraded", text .. " " .. failure) end
  local held = readCondition(obj, "RestartHeld", "True")
  if held then return judgeWaiting(isBusy, text .. " Held: " .. held) end
  return newHealth("Progressing", readText(status, "phase") == "" and unobserved or text)
end

return judgeController(obj) or judgeRequest()
