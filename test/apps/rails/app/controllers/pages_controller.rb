# A form, which Rails takes from its own Origin alone.
class PagesController < ActionController::Base
  @@times = 0

  def show
    render inline: '<h1>Counted: <%= times %></h1><%= form_with url: "/", local: true do |form| %><%= form.submit "Count" %><% end %>', locals: { times: @@times }
  end

  def count
    @@times += 1
    redirect_to root_url
  end
end
