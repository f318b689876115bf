-- Runs in Neovim: the functions that users call, with the settings of docs/editor.md. Results are
-- written as JSON to the file in $RESULTS.
local results = {}
local new = vim.fn.has('nvim-0.11') == 1 -- the older functions are deprecated, and some are gone
local clients = vim.lsp.get_clients or vim.lsp.get_active_clients
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
    local c = clients({ bufnr = vim.api.nvim_get_current_buf() })[1]
    return c and c.initialized
  end)
end

local function here()
  return vim.fn.fnamemodify(vim.api.nvim_buf_get_name(0), ':.') .. ':' .. vim.fn.line('.')
end

local function text() return table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), '\n') end

-- current tries what Neovim has since version 0.11.
local function current()
  local filetypes = {}
  for _, name in ipairs({ 'main.tf', 'terraform.tfvars', 'app/terragrunt.hcl', 'x.tofu' }) do
    vim.cmd('silent edit! ' .. dir .. '/' .. name)
    wait('the client of ' .. name, function() return #clients({ bufnr = 0 }) == 1 end)
    table.insert(filetypes, vim.bo.filetype)
  end
  results.filetypes = filetypes

  at('main.tf', 'variable')
  local client = clients({ bufnr = 0 })[1]
  vim.lsp.inlay_hint.enable(true)
  wait('inlay hints', function() return #vim.lsp.inlay_hint.get({ bufnr = 0 }) > 0 end)
  results.hints = vim.lsp.inlay_hint.get({ bufnr = 0 })[1].inlay_hint.label

  local line = vim.fn.search('input = ') - 1
  local column = vim.fn.getline(line + 1):find('local') - 1
  local function token() return (vim.lsp.semantic_tokens.get_at_pos(0, line, column) or {})[1] end
  wait('semantic tokens', function() return token() ~= nil end)
  results.token = token().type

  -- A server with pull diagnostics pushes none to a client that requests them.
  results.pulled = client:supports_method('textDocument/diagnostic')
  at('wrong.tf', 'local.na')
  vim.api.nvim_buf_set_lines(0, 0, -1, false, { 'output "wrong" {', '  value = local.nan', '}' })
  wait('diagnostics', function() return #vim.diagnostic.get(0) > 0 and vim.diagnostic.get(0)[1].message:find('"nan"', 1, true) ~= nil end)


  at('main.tf', 'variable')
  vim.wo.foldmethod, vim.wo.foldexpr = 'expr', 'v:lua.vim.lsp.foldexpr()'
  wait('folding', function() return vim.fn.foldlevel(1) == 1 end)
  results.folded = { vim.fn.foldlevel(1), vim.fn.foldlevel(vim.fn.line('$')) }

  vim.lsp.buf.document_symbol({ on_list = function(l) results.symbols = #l.items end })
  wait('symbols', function() return results.symbols ~= nil end)

  -- Neovim itself does not send this request. Plugins that rename files do.
  local uri = vim.uri_from_fname(dir .. '/m')
  local params = { files = { { oldUri = uri, newUri = uri .. 'oved' } } }
  local answer = client:request_sync('workspace/willRenameFiles', params, 20000)
  vim.lsp.util.apply_workspace_edit(answer.result, client.offset_encoding)
  results.moved = text():match('source = "[^"]*"')
end

local ok, err = pcall(function()
  at('wrong.tf', 'local.na')
  wait('diagnostics', function() return #vim.diagnostic.get(0) > 0 end)
  results.diagnostics = vim.diagnostic.get(0)[1].message

  -- Code actions: the only one is chosen.
  local titles = {}
  vim.ui.select = function(items, _, choose)
    for _, i in ipairs(items) do
      table.insert(titles, (i.action or i[2]).title)
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
  local answers = vim.lsp.buf_request_sync(0, 'textDocument/completion', vim.lsp.util.make_position_params(0, 'utf-16'), 20000)
  results.completion = {}
  for _, a in pairs(answers) do
    for _, i in ipairs(a.result.items or a.result) do
      table.insert(results.completion, i.label)
    end
  end
  results.omnifunc = vim.bo.omnifunc

  at('ugly.tf', 'ugly')
  if new then
    vim.lsp.buf.format({ timeout_ms = 20000 })
  else
    vim.lsp.buf.formatting_sync(nil, 20000)
  end
  results.formatted = text()

  at('main.tf', 'variable "si')
  local function lenses()
    if not vim.lsp.codelens.enable then -- before 0.12
      return vim.lsp.codelens.get(0)
    end
    return vim.tbl_map(function(l) return l.lens end, vim.lsp.codelens.get({ bufnr = 0 }))
  end
  if vim.lsp.codelens.enable then
    vim.lsp.codelens.enable(true, { bufnr = 0 })
  else
    vim.lsp.codelens.refresh()
  end
  wait('lenses', function() return #lenses() > 0 and lenses()[1].command ~= nil end)
  results.lenses = {}
  for _, l in ipairs(lenses()) do
    table.insert(results.lenses, l.command and l.command.title or '')
  end

  at('main.tf', 'variable "si')
  vim.lsp.buf.rename('count_of')
  wait('rename', function() return text():find('var.count_of', 1, true) ~= nil end)
  results.renamed = text()
  results.tfvars = table.concat(vim.api.nvim_buf_get_lines(vim.fn.bufnr('terraform.tfvars'), 0, -1, false), '\n')
  if new then
    current()
  end
  for _, c in pairs(clients()) do
    c.stop(new and c or nil)
  end
  wait('the end of the server', function() return #clients() == 0 end)
end)
write(ok and 'ok' or tostring(err))
vim.cmd('qall!')
