-- Runs in Neovim: the functions that users call, with the settings of docs/editor.md. Results are
-- written as JSON to the file in $RESULTS.
local results = {}
local dir = vim.fn.getcwd()

local function write(status)
  results.status = status
  vim.fn.writefile({ vim.fn.json_encode(results) }, os.getenv('RESULTS'))
end

local function wait(what, f)
  if not vim.wait(20000, f, 20) then
    error('timeout: ' .. what)
  end
end

-- at opens a file with the cursor behind a mark.
local function at(name, mark)
  vim.cmd('silent edit! ' .. dir .. '/' .. name)
  vim.fn.cursor(1, 1)
  vim.fn.search('\\V' .. vim.fn.escape(mark, '\\'), 'ceW')
  wait('the client', function()
    for _, c in pairs(vim.lsp.buf_get_clients(0)) do
      return c.initialized
    end
    return false
  end)
end

local function here()
  return vim.fn.fnamemodify(vim.api.nvim_buf_get_name(0), ':.') .. ':' .. vim.fn.line('.')
end

local function text() return table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), '\n') end

local ok, err = pcall(function()
  at('wrong.tf', 'local.na')
  wait('diagnostics', function() return #vim.diagnostic.get(0) > 0 end)
  results.diagnostics = vim.diagnostic.get(0)[1].message

  -- Code actions: the only one is chosen.
  local titles = {}
  vim.ui.select = function(items, _, choose)
    for _, i in ipairs(items) do
      table.insert(titles, i[2].title)
    end
    choose(items[1])
  end
  vim.lsp.buf.code_action()
  wait('the code action', function() return text():find('local.name', 1, true) ~= nil end)
  results.actions = titles
  results.fixed = text()

  at('main.tf', 'input = local.na')
  vim.lsp.buf.definition()
  wait('definition', function() return here() == 'main.tf:7' end)
  results.definition = here()

  at('main.tf', 'variable "si')
  vim.lsp.buf.references({ includeDeclaration = false })
  wait('references', function() return #vim.fn.getqflist() > 0 end)
  results.references = {}
  for _, i in ipairs(vim.fn.getqflist()) do
    table.insert(results.references, vim.fn.fnamemodify(vim.fn.bufname(i.bufnr), ':t') .. ':' .. i.lnum)
  end
  vim.cmd('silent cclose')

  at('main.tf', 'input = local.na')
  vim.lsp.buf.hover()
  local function floating()
    for _, w in ipairs(vim.api.nvim_list_wins()) do
      if vim.api.nvim_win_get_config(w).relative ~= '' then
        return table.concat(vim.api.nvim_buf_get_lines(vim.api.nvim_win_get_buf(w), 0, -1, false), '\n')
      end
    end
  end
  wait('hover', function() return floating() ~= nil end)
  results.hover = floating()

  -- Completion as with <C-x><C-o>.
  at('main.tf', 'input = local.')
  vim.api.nvim_win_set_cursor(0, { vim.fn.line('.'), vim.fn.col('.') })
  local answers = vim.lsp.buf_request_sync(0, 'textDocument/completion', vim.lsp.util.make_position_params(), 20000)
  results.completion = {}
  for _, a in pairs(answers) do
    for _, i in ipairs(vim.lsp.util.text_document_completion_list_to_complete_items(a.result, '')) do
      table.insert(results.completion, i.word)
    end
  end
  results.omnifunc = vim.bo.omnifunc

  at('ugly.tf', 'ugly')
  vim.lsp.buf.formatting_sync(nil, 20000)
  results.formatted = text()

  at('main.tf', 'variable "si')
  vim.lsp.codelens.refresh()
  wait('lenses', function() return #vim.lsp.codelens.get(0) > 0 and vim.lsp.codelens.get(0)[1].command ~= nil end)
  results.lenses = {}
  for _, l in ipairs(vim.lsp.codelens.get(0)) do
    table.insert(results.lenses, l.command and l.command.title or '')
  end

  at('main.tf', 'variable "si')
  vim.lsp.buf.rename('count_of')
  wait('rename', function() return text():find('var.count_of', 1, true) ~= nil end)
  results.renamed = text()
  results.tfvars = table.concat(vim.api.nvim_buf_get_lines(vim.fn.bufnr('terraform.tfvars'), 0, -1, false), '\n')
  vim.lsp.stop_client(vim.lsp.get_active_clients())
  wait('the end of the server', function() return #vim.lsp.get_active_clients() == 0 end)
end)
write(ok and 'ok' or tostring(err))
vim.cmd('qall!')
