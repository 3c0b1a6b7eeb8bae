require 'logger'
require 'rails'
require 'action_controller/railtie'

class Porch < Rails::Application
  config.load_defaults 6.1
  config.eager_load = false
  config.secret_key_base = 'porch' * 16
end
