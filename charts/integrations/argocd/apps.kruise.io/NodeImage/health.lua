-- findFailedTag returns the failed tag that is first by its name, with its error.
local function findFailedTag()
  local first, message
  for name, image in pairs(readTable(obj, "status", "imageStatuses")) do
    for _, tag in ipairs(readTable(image, "tags")) do
      local text = type(name) == "string" and name .. ":" .. readText(tag, "tag")
      if text and readField(tag, "phase") == "Failed" and (not first or text < first) then
        first, message = text, readText(tag, "message")
      end
    end
  end
  return first and " Tag " .. first .. ": " .. message or ""
end

local function judgeImages()
  local status = readTable(obj, "status")
  if readField(status, "firstSyncStatus", "status") == "Failed" then
    return newHealth("Degraded", "The node cannot pull images: " .. readText(status, "firstSyncStatus", "message"))
  end
  local wanted, failed = readNumber(status, "desired"), readNumber(status, "failed")
  local text = "Tags: " .. readNumber(status, "succeeded") .. " of " .. wanted .. " pulled, " .. failed .. " failed."
  if failed > 0 then return newHealth("Degraded", text .. findFailedTag()) end
  if readNumber(status, "succeeded") < wanted then return newHealth("Progressing", text) end
  return newHealth("Healthy", text)
end

return judgeController(obj) or judgeImages()
