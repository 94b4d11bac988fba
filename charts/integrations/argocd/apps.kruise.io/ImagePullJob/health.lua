-- describeFailure says why nodes do not get the image; nil if all may.
local function describeFailure()
  local invalid = readField(findCondition(obj, "PullHeld"), "reason") == "InvalidImage" and readCondition(obj, "PullHeld", "True")
  if invalid then return invalid end
  local failed = readNumber(obj, "status", "failed")
  if failed == 0 then return nil end
  local text = failed .. " of " .. readNumber(obj, "status", "desired") .. " nodes have not pulled the image"
  local node, message = readText(obj, "status", "failedNodes", 1), readText(obj, "status", "message")
  if node ~= "" then text = text .. ", such as " .. node end
  if message ~= "" then text = text .. " (" .. message .. ")" end
  local why = readCondition(obj, "PullDenied", "True") or readCondition(obj, "PullSecretMissing", "True")
  return text .. "." .. (why and " " .. why or "")
end

-- An image that is no name of one is found before the job has a startTime.
local health, failure = judgeController(obj), describeFailure()
if not failure then health = judgeStarted(obj) end
return health or judgePulls(obj, "nodes have pulled the image", readNumber(obj, "status", "succeeded"), readNumber(obj, "status", "desired"), failure)
