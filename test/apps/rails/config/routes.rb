Rails.application.routes.draw do
  root 'pages#show'
  post '/', to: 'pages#count'
end
