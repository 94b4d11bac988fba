local function judgeSpread()
  local pods = 0
  for _, subset in ipairs(readTable(obj, "status", "subsetStatuses")) do pods = pods + readNumber(subset, "replicas") end
  local text, wrong = "Pods in the subsets: " .. pods .. ".", readCondition(obj, "Placing", "False")
  if not wrong then return newHealth("Healthy", text) end
  local reason = readField(findCondition(obj, "Placing"), "reason")
  -- The workload may be of a later wave of the same sync, which begins when this object is Healthy.
  if reason == "TargetNotFound" then return newHealth("Healthy", text .. " " .. wrong) end
  if reason == "UnknownSubset" then return newHealth("Suspended", text .. " " .. wrong) end
  return newHealth("Degraded", wrong)
end

return judgeObserved(obj) or judgeSpread()
