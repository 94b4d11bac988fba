-- describeFailure returns the text of a condition that is True, with the first namespace. v1alpha1 calls the list failedNamespace.
local function describeFailure(condition)
  local namespace = readText(condition, "failedNamespaces", 1)
  if namespace == "" then namespace = readText(condition, "failedNamespace", 1) end
  local text = readText(condition, "type") .. ": " .. readText(condition, "reason")
  if namespace == "" then return text end
  return text .. " (such as in namespace " .. namespace .. ")"
end

local function judgeCopies()
  local text = readNumber(obj, "status", "succeeded") .. " of " .. readNumber(obj, "status", "desired") .. " namespaces have the copy."
  local missing
  for _, condition in ipairs(readTable(obj, "status", "conditions")) do
    if readField(condition, "status") == "True" then
      if condition.type ~= "NamespaceNotExists" then return newHealth("Degraded", text .. " " .. describeFailure(condition)) end
      missing = describeFailure(condition)
    end
  end
  if missing then return newHealth("Suspended", text .. " " .. missing) end
  if readNumber(obj, "status", "succeeded") < readNumber(obj, "status", "desired") then return newHealth("Progressing", text) end
  return newHealth("Healthy", text)
end

return judgeObserved(obj) or judgeCopies()
